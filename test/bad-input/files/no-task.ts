export default { prompt: "1+1=", answer: "2" };
