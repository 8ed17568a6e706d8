// The search box looks for every word as the beginning of one, so that "diag_shift in NetKet" would
// find Install and Inference first. Words that say nothing are left out of questions.
const SILENT = new Set(
  ("a about an and any are as at be by can could do does for from get had has have how i if in into " +
    "is it its me my no not of on or our so than that the their them then there these they this to " +
    "was we were what when where which who whom why will with would you your").split(" ")
)

function spoken(question) {
  const words = question.split(/\s+/).filter(word => !SILENT.has(word.toLowerCase().replace(/\W+$/, "")))
  return words.length ? words.join(" ") : question
}

const QUERY = 2 // the kind of message that asks; others build the index

window.Worker = class extends window.Worker {
  postMessage(message, ...rest) {
    const asks = message?.type === QUERY && typeof message.data === "string"
    super.postMessage(asks ? { ...message, data: spoken(message.data) } : message, ...rest)
  }
}
