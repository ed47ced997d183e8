export default { lr: rate };
