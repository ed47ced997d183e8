const lr = 0.1;
