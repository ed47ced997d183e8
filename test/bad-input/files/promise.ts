export default Promise.resolve({ lr: 0.1 });
