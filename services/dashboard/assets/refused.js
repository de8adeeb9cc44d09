// Says above the page what the server refuses, or that it does not answer: Dash does neither.
(() => {
  const KEPT_MS = 20000;
  const ask = window.fetch;
  let shown = 0;

  const tell = (text) => {
    document.getElementById("refused").textContent = text;
    shown = text ? Date.now() : 0;
  };

  const reason = async (answer) => {
    const error = await answer.json().catch(() => ({}));
    return error.message ? `${error.code}: ${error.message}` : `The server answered ${answer.status}.`;
  };

  window.fetch = async (...asked) => {
    try {
      const answer = await ask(...asked);
      if (!answer.ok) tell(await reason(answer.clone()));
      else if (shown && Date.now() > shown + KEPT_MS) tell("");
      return answer;
    } catch (error) {
      tell("The server does not answer.");
      throw error;
    }
  };
})();
