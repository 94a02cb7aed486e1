"""Controls a headless Chromium over two pipes by its DevTools protocol, without any package."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]

# A browser that does not answer for this long hangs, however busy the machine is.
HANG_SECONDS = 900


def find_browser():
    """Returns the program in CKPLAN_BROWSER, or a Chromium in PATH, or None."""
    named = os.environ.get("CKPLAN_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """Shows one page at a time. `errors` has the errors that the page wrote to its console."""

    def __init__(self, program, profile):
        reads, writes = os.pipe(), os.pipe()

        def place_pipes():  # The browser reads from descriptor 3 and writes to 4.
            low, high = os.dup(reads[0]), os.dup(writes[1])
            os.dup2(low, 3)
            os.dup2(high, 4)

        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += ["--no-first-run", "--disable-background-networking", "--remote-debugging-pipe"]
        # The page must not need a network, so no host can be reached.
        options += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            [program, *options],
            preexec_fn=place_pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads[0])
        os.close(writes[1])
        self.to_browser, self.from_browser = reads[1], writes[0]
        self.unread = b""
        self.last_id = 0
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")

    session = None

    def close(self):
        os.close(self.to_browser)
        self.process.terminate()
        self.process.wait(30)
        os.close(self.from_browser)

    def call(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last_id:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def receive(self, seconds=HANG_SECONDS):
        end = time.monotonic() + seconds
        while b"\0" not in self.unread:
            left = end - time.monotonic()
            ready, _, _ = select.select([self.from_browser], [], [], max(left, 0))
            assert ready, "the browser does not answer"
            part = os.read(self.from_browser, 1 << 16)
            assert part, "the browser has ended"
            self.unread += part
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    @property
    def errors(self):
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"])
            if event.get("method") == "Runtime.consoleAPICalled" and params["type"] == "error":
                found.append(params["args"])
            if event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"])
        return found

    @property
    def requests(self):
        """Returns the addresses that the page has requested."""
        sent = [e["params"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]

    def open(self, file, width=1400, height=1000, dark=False):
        """Opens the file, and waits until the page reports that it is ready."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events = []
        start = time.monotonic()
        self.call("Page.navigate", url=file.as_uri())
        while self.run("document.documentElement?.dataset.state") != "ready":
            assert not self.errors, self.errors
            assert time.monotonic() - start < HANG_SECONDS, "the page is never ready"
        # Waits until its drawing is on the screen.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def cpu_seconds(self):
        """Returns the CPU time of the page's main thread, which other programs do not affect."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    def run(self, script):
        """Returns the value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def key(self, key, shift=False):
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, " ": 32, "End": 35, "Home": 36}
        codes |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        params = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), "modifiers": 8 * shift}
        if len(key) == 1:
            params["text"] = key
        if key == "Enter":
            params["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **params)
        self.call("Input.dispatchKeyEvent", type="keyUp", **params)

    def mouse(self, kind, x, y, clicks=0):
        button = "none" if kind == "mouseMoved" and not clicks else "left"
        self.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button=button,
            buttons=1 if clicks else 0,
            clickCount=clicks,
        )

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, 1)
        self.mouse("mouseReleased", x, y, 1)

    def screenshot(self, file, whole=False):
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(answer["data"]))
