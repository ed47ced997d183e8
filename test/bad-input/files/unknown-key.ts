export default { stpes: 3 };
