// The server: one stream of changes, and requests. The token never leaves this tab.

const KEY = "moorings-token";
const FIRST_WAIT_MS = 250;
const MOST_WAIT_MS = 5000;

export function takeToken() {
  const given = /^#token=([\w-]+)$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem(KEY, given[1]);
    history.replaceState(null, "", "#/fleet");
  }
  return sessionStorage.getItem(KEY) ?? "";
}

export const keepToken = (token) => sessionStorage.setItem(KEY, token.trim().replace(/^.*#token=/, ""));

const headers = () => ({ Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` });

export async function ask(path, { method = "GET", body } = {}) {
  const response = await fetch(path, { method, body, headers: headers(), cache: "no-store" });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error ?? `status ${response.status}`);
  return answer;
}

// Follow changes forever: after each lost connection everything comes anew.
export async function follow(onUpdate, onState) {
  let waitMs = FIRST_WAIT_MS;
  for (;;) {
    try {
      const response = await fetch("/api/events", { headers: headers(), cache: "no-store" });
      if (response.status === 401) return onState("refused");
      if (response.ok) {
        performance.mark("connected");
        onState("live");
        waitMs = FIRST_WAIT_MS;
        await readEvents(response.body, onUpdate);
      }
    } catch (error) {
      console.debug("stream lost", error);
    }
    onState("lost");
    await new Promise((resume) => setTimeout(resume, waitMs));
    waitMs = Math.min(2 * waitMs, MOST_WAIT_MS);
  }
}

async function readEvents(body, onUpdate) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      onUpdate(JSON.parse(text.slice("data: ".length, end)));
      text = text.slice(end + 2);
    }
  }
}
