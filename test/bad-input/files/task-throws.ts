throw new Error("no problems today");
