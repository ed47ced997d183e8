const options: { [name: string]: unknown } = {};
options.self = options;
export default { method: { name: "grpo", options } };
