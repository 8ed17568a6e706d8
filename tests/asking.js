// Asks the search box of the built site: node asking.js WORKER SEARCH INDEX QUESTION…, one line of JSON with, for each
// question, the places that it finds, best first. The worker is the site's own, and so is what it is spoken to with.
const fs = require("fs")
const vm = require("vm")

const [worker, search, index, ...questions] = process.argv.slice(2)
const answers = []
let listen
const inside = {
  console,
  addEventListener: (kind, listener) => (listen = listener),
  postMessage: message => answers.push(message),
  document: { querySelector: () => null },
}
inside.self = inside
vm.runInNewContext(fs.readFileSync(worker, "utf8"), inside)

class Worker {
  postMessage(data) {
    listen({ data })
  }
}
const page = { window: { Worker } }
vm.runInNewContext(fs.readFileSync(search, "utf8"), page)
const box = new page.window.Worker()

async function ask(type, data) {
  box.postMessage({ type, data })
  while (!answers.length) await new Promise(resolve => setTimeout(resolve, 5))
  return answers.shift().data
}

async function main() {
  const { config, docs } = JSON.parse(fs.readFileSync(index, "utf8"))
  const fields = { title: { boost: 1000 }, text: { boost: 1 }, tags: { boost: 1e6 } }
  await ask(0, { config: { fields, ...config }, docs, options: { suggest: false } })
  const found = []
  for (const question of questions) {
    const { items } = await ask(2, question)
    found.push(items.map(hits => hits[0].location))
  }
  process.stdout.write(JSON.stringify(found) + "\n")
}
main()
