const rate: number = 0.1;

throw new Error("no rate for today");
export default { lr: rate };
