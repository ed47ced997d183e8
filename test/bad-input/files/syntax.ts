export default {
  lr: = 0.1,
};
