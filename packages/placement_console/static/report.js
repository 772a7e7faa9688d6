// The start of a report: its data are in the file, compressed, and there is no server.
import { startApp } from "./app.js";
import { useRecorded } from "./lib/api.js";

async function startReport() {
  const packed = Uint8Array.from(atob(document.getElementById("data").content.textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { time, state, answers } = await new Response(stream).json();
  useRecorded(answers);
  startApp(document.body, state, time);
}

startReport();
