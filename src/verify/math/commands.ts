/** What the commands of LaTeX mean in an answer. */

export type CommandMeaning =
  | { readonly does: "nothing" }
  | { readonly does: "gap" }
  /** The next argument is dropped. */
  | { readonly does: "drop" }
  /** The argument is running text. */
  | { readonly does: "text" }
  /** The argument is one word, as of a unit or an operator. */
  | { readonly does: "roman" }
  | { readonly does: "sign" | "name" | "function" | "command" | "open" | "close" | "currency"; readonly text: string };

const table = new Map<string, CommandMeaning>();

const all = (does: "nothing" | "gap" | "drop" | "text" | "roman", names: string): void => {
  for (const name of names.split(" ")) table.set(name, { does });
};
/** `le=≤`: the command and its text; one word: both are the same. */
const each = (does: "sign" | "name" | "function" | "command" | "open" | "close" | "currency", entries: string): void => {
  for (const entry of entries.split(" ")) {
    const split = entry.indexOf("=", 1);
    table.set(split < 0 ? entry : entry.slice(0, split), { does, text: split < 0 ? entry : entry.slice(split + 1) });
  }
};

all(
  "nothing",
  "displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits mathstrut strut null big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm Bigm middle rm bf it sf tt cal boldmath normalsize small large Large LARGE huge Huge mathbf boldsymbol bm mathit mathsf mathtt mathcal mathscr mathfrak pmb mathopen mathclose mathbin mathrel mathord mathpunct mathinner ensuremath boxed fbox framebox underline uline displaylimits nonumber notag centering relax protect num SI qty",
);
table.set("!", { does: "nothing" });
table.set("/", { does: "nothing" });
table.set("-", { does: "nothing" });
all("gap", "qed blacksquare square Box checkmark quad qquad space enspace enskip thinspace medspace thickspace nobreakspace hfill newline");
for (const name of [",", ";", ":", ">", " ", "\n", "\t"]) table.set(name, { does: "gap" });
all("drop", "hspace vspace hskip color textcolor phantom hphantom vphantom label tag");
all("text", "text textbf textit textrm textsf texttt textnormal textup textsc textmd mbox hbox emph");
all("roman", "mathrm operatorname mathop mathnormal unit si");

each(
  "sign",
  "le=≤ leq=≤ leqslant=≤ leqq=≤ ge=≥ geq=≥ geqslant=≥ geqq=≥ ne=≠ neq=≠ lt=< gt=> approx=≈ approxeq=≈ thickapprox=≈ cong=≈ simeq=≈ doteq=≈ sim=∼ equiv=≡",
);
each(
  "sign",
  "in=∈ isin=∈ notin=∉ subset=⊂ subseteq=⊂ cup=∪ bigcup=∪ cap=∩ bigcap=∩ setminus=∖ smallsetminus=∖ backslash=∖ to=→ rightarrow=→ longrightarrow=→ mapsto=→",
);
each(
  "sign",
  "Rightarrow=⇒ Longrightarrow=⇒ implies=⇒ iff=⇔ Leftrightarrow=⇔ land=∧ wedge=∧ lor=∨ vee=∨ forall=∀ exists=∃ mid=| vert=| Vert=‖ |=‖ parallel=∥ perp=⊥",
);
each("sign", "times=* cdot=* cdotp=* ast=* star=* bullet=* div=÷ pm=± mp=∓ circ=∘ degree=° textdegree=° prime=' colon=: angle=∠ triangle=△ %=% #=# &=& _=_");
each(
  "sign",
  "ldots=… cdots=… dots=… dotsc=… dotsb=… dotsm=… vdots=… ddots=… comma=, slash=/ lnot=¬ neg=¬ therefore=∴ because=∵ propto=∝ top=⊤ intercal=⊤ mod=mod bmod=mod",
);
each(
  "command",
  "frac dfrac=frac tfrac=frac cfrac=frac nicefrac=frac sfrac=frac sqrt binom dbinom=binom tbinom=binom choose over atop sum prod int iint oint lim limsup liminf",
);
each(
  "command",
  "begin end not overline bar=overline vec overrightarrow=vec hat widehat=hat tilde widetilde=tilde dot ddot mathbb=blackboard Bbb=blackboard pmod pod=pmod root overset underset stackrel cancel",
);
each(
  "function",
  "sin cos tan cot sec csc cosec=csc arcsin arccos arctan arccot sinh cosh tanh coth ln log lg exp min max gcd lcm det dim ker deg sup inf arg Pr sgn tg=tan ctg=cot arctg=arctan",
);
each(
  "name",
  "alpha beta gamma delta epsilon varepsilon=epsilon zeta eta theta vartheta=theta iota kappa lambda mu nu xi omicron=o pi varpi=pi rho varrho=rho sigma varsigma=sigma tau upsilon phi varphi=phi chi psi omega",
);
each(
  "name",
  "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar imath=i jmath=j partial nabla infty=infinity emptyset varnothing=emptyset aleph Re Im R=Reals N=Naturals Z=Integers Q=Rationals C=Complexes",
);
each("open", "{=\\{ lbrace=\\{ langle=⟨ lfloor=⌊ lceil=⌈ lvert=| lVert=‖ lbrack=[ lparen=(");
each("close", "}=\\} rbrace=\\} rangle=⟩ rfloor=⌋ rceil=⌉ rvert=| rVert=‖ rbrack=] rparen=)");
each("currency", "$=USD textdollar=USD dollar=USD euro=EUR texteuro=EUR EUR pounds=GBP textsterling=GBP yen=JPY textyen=JPY cent textcent=cent");

/** Commands by name, without the backslash. */
export const commandMeanings: ReadonlyMap<string, CommandMeaning> = table;

/** Sets that blackboard letters name. */
export const blackboard: { readonly [letter: string]: string } = { R: "Reals", Z: "Integers", N: "Naturals", Q: "Rationals", C: "Complexes" };
