export default { lr: Number.NaN };
