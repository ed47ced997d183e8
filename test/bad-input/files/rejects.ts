export default await Promise.reject(new Error("no rate yet"));
