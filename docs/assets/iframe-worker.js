// Browsers start no web workers from files. Opened as a file, the site runs the worker of its search
// box in a hidden frame instead, which has the same face: postMessage, and events called "message".
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.srcdoc = "<!doctype html><title>search</title>"
      this.frame.addEventListener("load", () => this.start(url), { once: true })
      document.documentElement.append(this.frame)
    }

    start(url) {
      const inside = this.frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.src = url
      script.addEventListener("load", () => {
        this.send = data => inside.dispatchEvent(new MessageEvent("message", { data }))
        this.waiting.forEach(data => this.send(data))
      })
      inside.document.head.append(script)
    }

    postMessage(data) {
      if (this.send) this.send(data)
      else this.waiting.push(data)
    }

    terminate() {
      this.frame.remove()
    }
  }
}
