import { rate } from "./gone.js";

export default { lr: rate };
