export default {
  get lr(): number {
    throw new Error("no rate");
  },
};
