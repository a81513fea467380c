"""A stand-in for Azure Service Bus: a broker that speaks as much of AMQP 1.0 and of the management protocol of Service
Bus as package servicebus uses. It shows how the package uses the protocol. It does not show how Azure behaves.

usage: standin.py PORT JOURNAL

PORT is a port of 127.0.0.1. JOURNAL is a file that keeps the messages over a kill, or "" to keep them only in memory.
The broker creates each queue when somebody names it, except those whose names contain "missing". It locks a message for
a minute, or for the 2500 ms of "lock2500" in the name of the queue. It dead-letters a message after 2000 deliveries, or
after the 3 of "most3". It delivers one message every 5 ms from a queue with "drip" in its name. It refuses the name
"wrong" of a key. It writes one line, "ready" and another port, when it listens. It ends with its standard input.

To each connection to the other port it serves a broker of its own, whose clock the client sets. So a test can run in
virtual time: it forwards the bytes of AMQP connections, and gets all that the broker has to say at that time. A request
is an operation, the number of a connection, the time in nanoseconds, a length, and as many bytes. The answers to it are
an operation, the number of a connection, a length, and as many bytes. The last one has the operation 0 and the time at
which the broker has something to do next, or 0.
"""

import base64
import collections
import heapq
import json
import os
import re
import socketserver
import struct
import sys
import threading
import time
import uuid

from cproton import pn_collector_peek, pn_collector_pop, pn_event_type
from proton import Array, Collector, Condition, Connection, Data, Delivery, Endpoint, Event, EventType, Message, Transport, UNDESCRIBED, int32, symbol, timestamp
from proton.handlers import Handshaker
from proton.reactor import Container

DEAD = "/$DeadLetterQueue"
MANAGEMENT = "/$management"
MAX_SIZE = 256 * 1024
MS = 1_000_000  # times are in nanoseconds


class Stored:
    """A message of a queue."""

    def __init__(self, seq, data, now, due=0, count=0):
        self.seq, self.data, self.due, self.count = seq, data, due, count
        self.enqueued = max(now, due)
        self.lock = None  # the token while somebody has it
        self.until = 0
        self.peeked = (None, b"")


class Queue:
    def __init__(self, name):
        self.name = name
        self.lock = int((re.search(r"lock(\d+)", name) or [0, 60000])[1]) * MS
        self.most = int((re.search(r"most(\d+)", name) or [0, 2000])[1])
        self.drips = "drip" in name
        self.messages = {}  # by sequence number
        self.ready = []  # sequence numbers, oldest first
        self.links = collections.deque()  # of receivers


class Broker(Handshaker):
    def __init__(self, port=0, journal="", now=time.time_ns, max_size=MAX_SIZE):
        super().__init__()
        self.port, self.now, self.max_size = port, now, max_size
        self.queues, self.seq, self.locks, self.replies = {}, 0, {}, {}
        self.times = []  # (time, sequence number, token): of locks and of scheduled messages
        self.owner = {}  # the queue of a sequence number
        self.journal = self.replay(journal) if journal else None

    # The journal has a line for each change.

    def replay(self, path):
        stored = {}
        if os.path.exists(path):
            with open(path) as f:
                for line in f:
                    if not line.endswith("\n"):
                        break  # the kill cut it, so nobody got an answer
                    op, name, seq, *rest = json.loads(line)
                    self.seq = max(self.seq, seq)
                    if op == "put":
                        stored[name, seq] = rest
                    else:
                        stored.pop((name, seq), None)
        for (name, seq), (data, due, count) in stored.items():
            self.add(name, Stored(seq, base64.b64decode(data), self.now(), due, count))
        return open(path, "a", buffering=1)

    def note(self, *change):
        if self.journal:
            self.journal.write(json.dumps(change) + "\n")

    def queue(self, name):
        return self.queues.setdefault(name, Queue(name))

    def add(self, name, stored):
        self.queue(name).messages[stored.seq] = stored
        self.owner[stored.seq] = name
        if stored.due > self.now():
            heapq.heappush(self.times, (stored.due, stored.seq, ""))
        else:
            heapq.heappush(self.queue(name).ready, stored.seq)

    def drop(self, name, seq):
        stored = self.queue(name).messages.pop(seq, None)
        self.owner.pop(seq, None)
        if stored and stored.lock:
            self.locks.pop(stored.lock, None)
        return stored

    def put(self, name, data, due=0):
        self.seq += 1
        self.note("put", name, self.seq, base64.b64encode(data).decode(), due, 0)
        self.add(name, Stored(self.seq, data, self.now(), due))
        self.pump(name)
        return self.seq

    # Links.

    def on_reactor_init(self, event):
        event.container.listen("amqp://127.0.0.1:%d" % self.port)
        event.container.schedule(0.005, self)
        print("ready", self.other, flush=True)

    def on_link_remote_open(self, event):
        link = event.link
        address = (link.remote_source if link.is_sender else link.remote_target).address or ""
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.snd_settle_mode = link.remote_snd_settle_mode
        link.rcv_settle_mode = link.remote_rcv_settle_mode
        if "missing" in address:
            link.open()
            link.condition = Condition("amqp:not-found", "The messaging entity '%s' could not be found." % address)
            link.close()
            return
        if link.is_sender:
            if address == "$cbs" or address.endswith(MANAGEMENT):
                key = (event.connection, event.session, link.remote_target.address)
                self.replies[key] = link
            else:
                self.queue(address).links.append(link)
        else:
            link.max_message_size = self.max_size
            link.flow(1000)
        link.open()

    def gone(self, link):
        for queue in self.queues.values():
            if link in queue.links:
                queue.links.remove(link)

    def on_link_remote_close(self, event):
        self.gone(event.link)
        event.link.close()
        event.link.free()

    def on_connection_remote_close(self, event):
        event.connection.close()

    def on_transport_closed(self, event):
        connection = event.connection
        for queue in self.queues.values():
            for link in [link for link in queue.links if link.connection == connection]:
                queue.links.remove(link)
        self.replies = {key: link for key, link in self.replies.items() if key[0] != connection}

    def on_link_flow(self, event):
        if event.link.is_sender and event.link.source.address in self.queues:
            self.pump(event.link.source.address)

    def on_timer_task(self, event):
        self.tick()
        event.container.schedule(0.005, self)

    def tick(self):
        """Does what is due."""
        now = self.now()
        while self.times and self.times[0][0] <= now:
            _, seq, token = heapq.heappop(self.times)
            name = self.owner.get(seq)
            stored = name and self.queue(name).messages.get(seq)
            if not stored:
                continue
            if token == "" and stored.lock is None:  # it was scheduled
                heapq.heappush(self.queue(name).ready, seq)
            elif token and stored.lock == token:
                if stored.until > now:  # it was renewed
                    heapq.heappush(self.times, (stored.until, seq, token))
                    continue
                self.unlock(name, stored, True)
            self.pump(name)
        for queue in list(self.queues.values()):
            if queue.drips:
                self.pump(queue.name, 1)

    # Deliveries.

    def pump(self, name, most=None):
        queue = self.queue(name)
        if most is None:
            most = 0 if queue.drips else len(queue.ready)
        for _ in range(len(queue.links)):
            link = queue.links[0]
            while most > 0 and queue.ready and link.credit > 0 and link.state & Endpoint.REMOTE_ACTIVE:
                stored = queue.messages.get(heapq.heappop(queue.ready))
                if stored and stored.lock is None:
                    self.deliver(queue, link, stored)
                    most -= 1
            queue.links.rotate(-1)

    def deliver(self, queue, link, stored):
        token = uuid.uuid4()
        stored.lock, stored.until = token.hex, self.now() + queue.lock
        self.locks[token.hex] = (queue.name, stored.seq)
        heapq.heappush(self.times, (stored.until, stored.seq, token.hex))
        message = self.shown(stored)
        message.annotations[symbol("x-opt-locked-until")] = timestamp(stored.until // MS)
        message.instructions = {symbol("x-opt-lock-token"): token}
        delivery = link.delivery(token.hex)
        delivery.context = token.hex
        link.send(message.encode())
        link.advance()

    def shown(self, stored):
        message = Message()
        message.decode(stored.data)
        message.delivery_count = stored.count
        message.annotations = dict(message.annotations or {})
        message.annotations[symbol("x-opt-sequence-number")] = stored.seq
        message.annotations[symbol("x-opt-enqueued-time")] = timestamp(stored.enqueued // MS)
        scheduled = stored.due > self.now()
        message.annotations[symbol("x-opt-message-state")] = int32(2 if scheduled else 0)
        return message

    def peeked(self, stored):
        """Returns what a peek shows of a message, which is encoded again only when it has changed."""
        state = (stored.data, stored.count, stored.due > self.now())
        if stored.peeked[0] != state:
            stored.peeked = (state, self.shown(stored).encode())
        return stored.peeked[1]

    def unlock(self, name, stored, crashed):
        self.locks.pop(stored.lock, None)
        stored.lock = None
        stored.count += crashed
        if stored.count >= self.queue(name).most:
            self.change(stored, {"DeadLetterReason": "MaxDeliveryCountExceeded", "DeadLetterErrorDescription": "too many deliveries"})
            self.put(name + DEAD, stored.data)
            self.drop(name, stored.seq)
            self.note("drop", name, stored.seq)
            return
        self.note("put", name, stored.seq, base64.b64encode(stored.data).decode(), stored.due, stored.count)
        heapq.heappush(self.queue(name).ready, stored.seq)

    def on_delivery(self, event):
        link, delivery = event.link, event.delivery
        if link.is_receiver:
            if delivery.readable and not delivery.partial:
                data = link.recv(delivery.pending)
                link.advance()
                link.flow(1)
                delivery.update(Delivery.ACCEPTED)
                self.received(event, link.target.address, data)
                delivery.settle()
        elif delivery.updated:
            state = delivery.remote_state
            if state in (Delivery.ACCEPTED, Delivery.REJECTED, Delivery.RELEASED, Delivery.MODIFIED):
                info = delivery.remote.condition.info if state == Delivery.REJECTED and delivery.remote.condition else None
                change = delivery.remote.annotations if state == Delivery.MODIFIED else None
                if self.settle(delivery.tag, state, info or change):
                    delivery.update(state)
                else:
                    delivery.local.condition = Condition("com.microsoft:message-lock-lost", "The lock supplied is invalid.")
                    delivery.update(Delivery.REJECTED)
                delivery.settle()
            elif delivery.settled:
                delivery.settle()

    def change(self, stored, properties):
        message = Message()
        message.decode(stored.data)
        message.properties = dict(message.properties or {})
        message.properties.update({str(key): value for key, value in properties.items()})
        stored.data = message.encode()

    def settle(self, token, state, properties):
        """Ends a lock, and reports whether it held."""
        held = self.locks.get(token)
        if not held:
            return False
        name, seq = held
        stored = self.queue(name).messages[seq]
        if stored.until <= self.now():
            return False
        if properties:
            self.change(stored, properties)
        if state == Delivery.ACCEPTED:
            self.drop(name, seq)
            self.note("drop", name, seq)
        elif state == Delivery.REJECTED:
            self.put(name + DEAD, stored.data)
            self.drop(name, seq)
            self.note("drop", name, seq)
        else:
            self.unlock(name, stored, state == Delivery.MODIFIED)
            self.pump(name)
        return True

    # What clients send: messages for queues, and requests to $cbs and to the management of a queue.

    def received(self, event, address, data):
        if address != "$cbs" and not address.endswith(MANAGEMENT):
            message = Message()
            message.decode(data)
            due = (message.annotations or {}).get(symbol("x-opt-scheduled-enqueue-time"), 0) * MS
            self.put(address, data, due)
            return
        request = Message()
        request.decode(data)
        status, body = 200, None
        if address != "$cbs":
            status, body = self.manage(address[:-len(MANAGEMENT)], request)
        elif "skn=wrong" in str(request.body):
            status = 401
        reply = Message(body=body, correlation_id=request.id)
        reply.properties = {"statusCode": int32(status), "statusDescription": "OK" if status < 300 else "refused"}
        link = self.replies.get((event.connection, event.session, request.reply_to))
        if link:
            link.delivery(uuid.uuid4().hex)
            link.send(reply.encode())
            link.advance()
            link.current and link.current.settle()

    def manage(self, name, request):
        operation, body = request.properties["operation"], request.body
        if operation == "com.microsoft:peek-message":
            some = sorted(s for s in self.queue(name).messages if s >= body["from-sequence-number"])[: body["message-count"]]
            found = [{"message": self.peeked(self.queue(name).messages[seq])} for seq in some]
            return (200, {"messages": found}) if found else (204, None)
        tokens = [token.hex for token in body["lock-tokens"].elements]
        if operation == "com.microsoft:renew-lock":
            until = self.now() + self.queue(name).lock
            for token in tokens:
                held = self.locks.get(token)
                if not held or self.queue(held[0]).messages[held[1]].until <= self.now():
                    return 410, None
                self.queue(held[0]).messages[held[1]].until = until
            return 200, {"expirations": Array(UNDESCRIBED, Data.TIMESTAMP, *[timestamp(until // MS)] * len(tokens))}
        if operation == "com.microsoft:update-disposition":
            state = {"completed": Delivery.ACCEPTED, "abandoned": Delivery.MODIFIED, "suspended": Delivery.REJECTED}
            properties = dict(body.get("properties-to-modify") or {})
            for key, to in (("deadletter-reason", "DeadLetterReason"), ("deadletter-description", "DeadLetterErrorDescription")):
                if body.get(key):
                    properties[to] = body[key]
            for token in tokens:
                if not self.settle(token, state[body["disposition-status"]], properties):
                    return 410, None
            return 200, None
        return 501, None


# HANDLED are the numbers of the events for which a broker has a method.
HANDLED = {t.number for t in vars(Event).values() if isinstance(t, EventType) and hasattr(Broker, t.method)}


class Wire:
    """An AMQP connection whose bytes somebody else forwards."""

    def __init__(self, broker):
        self.broker, self.collector = broker, Collector()
        self.connection, self.transport = Connection(), Transport(Transport.SERVER)
        self.connection.collect(self.collector)
        self.transport.bind(self.connection)

    def dispatch(self):
        queue = self.collector._impl
        while event := pn_collector_peek(queue):
            if pn_event_type(event) in HANDLED:  # the objects of the others would take most of the time
                Event.wrap(event).dispatch(self.broker)
            pn_collector_pop(queue)

    def push(self, data):
        while data and (room := self.transport.capacity()) > 0:
            self.transport.push(data[:room])
            data = data[room:]
            self.dispatch()

    def pull(self):
        """Returns the bytes to send, or None after the last ones."""
        self.dispatch()
        size = self.transport.pending()
        if size < 0:
            return None
        data = self.transport.peek(size) if size else b""
        if data:
            self.transport.pop(len(data))
        return data

    def close(self):
        self.transport.close_tail()
        self.transport.close_head()
        self.dispatch()


class Virtual(socketserver.StreamRequestHandler):
    DONE, OPEN, DATA, CLOSE, TICK = range(5)
    wbufsize = -1
    disable_nagle_algorithm = True

    def handle(self):
        wires, time_of = {}, [0]
        broker = Broker(now=lambda: time_of[0], max_size=8 * MAX_SIZE)
        while len(head := self.rfile.read(17)) == 17:
            op, number, time_of[0], size = struct.unpack(">BIqI", head)
            data = self.rfile.read(size)
            if op == self.OPEN:
                wires[number] = Wire(broker)
            elif number in wires and op == self.DATA:
                wires[number].push(data)
            elif number in wires and op == self.CLOSE:
                wires.pop(number).close()
            broker.tick()
            self.answer(wires)
            next_at = min(broker.times[0][0], 2**63 - 1) if broker.times else 0
            self.wfile.write(struct.pack(">BIIq", self.DONE, 0, 8, next_at))
            self.wfile.flush()

    def answer(self, wires):
        """Writes what the broker has to say, until it has no more."""
        said = True
        while said:
            said = False
            for number, wire in list(wires.items()):
                data = wire.pull()
                if data is None:
                    wires.pop(number).close()
                    self.wfile.write(struct.pack(">BII", self.CLOSE, number, 0))
                elif data:
                    self.wfile.write(struct.pack(">BII", self.DATA, number, len(data)) + data)
                said = said or data != b""


def end_with_input():
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
others = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Virtual)
others.daemon_threads = True
threading.Thread(target=others.serve_forever, daemon=True).start()
broker = Broker(int(sys.argv[1]), sys.argv[2])
broker.other = others.server_address[1]
Container(broker).run()
