/** Answers of a group as classes, and what votes make of them. */

/** Classes in the order in which they first appear. */
export interface Votes {
  /** Class of each answer; -1 for none. */
  readonly classOf: readonly number[];
  /** Answers a class. */
  readonly sizes: readonly number[];
  /** The first answer of each class, by its index. */
  readonly first: readonly number[];
}

/** The classes of a group's answers; an answer joins the first class whose first answer is the same. */
export function votesOf(answers: readonly (string | undefined)[], same: (a: string, b: string) => boolean): Votes {
  const first: number[] = [];
  const sizes: number[] = [];
  const classOf = answers.map((answer, i) => {
    if (answer === undefined) return -1;
    let found = first.findIndex((index) => same(answers[index] as string, answer));
    if (found < 0) {
      found = first.push(i) - 1;
      sizes.push(0);
    }
    sizes[found] = (sizes[found] as number) + 1;
    return found;
  });
  return { classOf, sizes, first };
}

/** Classes by size, largest first, ties by appearance; at most `most`. */
export function largest({ sizes }: Votes, most: number): number[] {
  return sizes
    .map((_, k) => k)
    .sort((a, b) => (sizes[b] as number) - (sizes[a] as number) || a - b)
    .slice(0, most);
}

/** n_class / G; 0 without an answer. */
export function softVotes({ classOf, sizes }: Votes): number[] {
  return classOf.map((k) => (k < 0 ? 0 : (sizes[k] as number) / classOf.length));
}

/** 1 in the largest class, the first of several; 0 elsewhere. */
export function hardVotes(votes: Votes): number[] {
  const [winner] = largest(votes, 1);
  return votes.classOf.map((k) => (k >= 0 && k === winner ? 1 : 0));
}

/** Entropy of the classes among the answers there are, in nats; 0 without any. */
export function voteEntropy({ sizes }: Votes): number {
  const answered = sizes.reduce((a, b) => a + b, 0);
  return sizes.reduce((sum, n) => sum - (n / answered) * Math.log(n / answered), 0);
}
