throw "no rate";
