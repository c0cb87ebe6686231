// Questions to the page's own process, which answers in JSON.

export class Refused extends Error {
  constructor(words, status) {
    super(words);
    this.status = status;
  }
}

/** The answer; Refused with the words of the page, or TypeError if its process does not answer. */
export async function ask(path, query, signal) {
  const text = query.toString();
  const response = await fetch(`api/${path}${text ? `?${text}` : ""}`, { signal, headers: { Accept: "application/json" } });
  const answer = await response.json().catch(() => ({ error: `no answer, but status ${response.status}` }));
  if (!response.ok) throw new Refused(answer.error ?? `status ${response.status}`, response.status);
  return answer;
}
