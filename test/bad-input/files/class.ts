class Config {
  lr = 0.1;
}
export default new Config();
