#!/usr/bin/env python3
"""Measures one Kafka-compatible broker from the side of librdkafka's Python clients; prints a JSON line a figure.

    clients.py BOOTSTRAP PID transactions   transactional produce of 1 KiB records: 100 and 10,000 a transaction
    clients.py BOOTSTRAP PID rebalance      50 members of one group, 100 partitions: until each has its share, at the
                                            start and when ten more join; classic and `consumer` protocol
    clients.py BOOTSTRAP PID crowd          memory with 5,000 connections and 1,000 groups that do nothing

Needs confluent-kafka. Not for: throughput of plain produce and fetch (the C clients of the peers do that).
"""
import json
import re
import resource
import socket
import struct
import sys
import threading
import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

RUN = format(int(time.time()), "x")


def row(**figures):
    print(json.dumps(figures), flush=True)


def create(bootstrap, topic, partitions):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
    time.sleep(1)


def transactions(bootstrap, _pid):
    topic = f"tx-{RUN}"
    create(bootstrap, topic, 16)
    value = b"x" * 1024
    for size, count in ((100, 300), (10_000, 20)):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{size}", "linger.ms": 5,
                             "batch.size": 262144, "queue.buffering.max.messages": 500000})
        producer.init_transactions(60)

        def one():
            producer.begin_transaction()
            for n in range(size):
                producer.produce(topic, value, partition=n % 16)
            producer.commit_transaction(60)

        for _ in range(max(1, count // 10)):
            one()
        start = time.time()
        for _ in range(count):
            one()
        seconds = time.time() - start
        row(suite="transactions", size=size, tx_s=round(count / seconds, 1),
            mb_s=round(count * size * 1024 / seconds / 1e6, 1))


class Member(threading.Thread):
    def __init__(self, bootstrap, topic, group, protocol):
        super().__init__(daemon=True)
        self.partitions, self.stop = (), False
        timing = {"session.timeout.ms": 45000} if protocol == "classic" else {}
        strategy = {"partition.assignment.strategy": "cooperative-sticky"} if protocol == "classic" else {}
        self.consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol,
                                  "enable.auto.commit": False, **timing, **strategy})
        self.consumer.subscribe([topic])

    def run(self):
        while not self.stop:
            self.consumer.poll(0.05)
            self.partitions = tuple(p.partition for p in self.consumer.assignment())
        self.consumer.close()


def settled(members, partitions):
    """Each partition has one owner, and everybody an even share."""
    shares = [m.partitions for m in members]
    owned = [p for share in shares for p in share]
    least, most = partitions // len(members), -(-partitions // len(members))
    return len(owned) == partitions == len(set(owned)) and all(least <= len(share) <= most for share in shares)


def wait_settled(members, partitions, start):
    while not settled(members, partitions):
        if time.time() - start > 90:
            return None
        time.sleep(0.02)
    return round(time.time() - start, 2)


def rebalance(bootstrap, _pid):
    for protocol in ("classic", "consumer"):
        topic = f"rb-{protocol}-{RUN}"
        create(bootstrap, topic, 100)
        start = time.time()
        members = [Member(bootstrap, topic, topic, protocol) for _ in range(50)]
        for member in members:
            member.start()
        joined = wait_settled(members, 100, start)
        start = time.time()
        more = [Member(bootstrap, topic, topic, protocol) for _ in range(10)]
        for member in more:
            member.start()
        grown = wait_settled(members + more, 100, start)
        figures = {"join_s": joined, "grow_s": grown}
        if None in figures.values():
            figures = {"error": f"not settled within 90 s: {figures}"}
        row(suite="rebalance", format=protocol, **figures)
        for member in members + more:
            member.stop = True
        for member in members + more:
            member.join(20)


def crowd(bootstrap, pid):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    topic = f"crowd-{RUN}"
    create(bootstrap, topic, 1)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for n in range(1000):
        group = ConsumerGroupTopicPartitions(f"{topic}-{n}", [TopicPartition(topic, 0, 0)])
        admin.alter_consumer_group_offsets([group])[f"{topic}-{n}"].result(30)
    host, port = bootstrap.rsplit(":", 1)
    hello = struct.pack(">hhih", 18, 0, 1, 5) + b"crowd"
    sockets = []
    for _ in range(5000):
        one = socket.create_connection((host, int(port)))
        one.sendall(struct.pack(">i", len(hello)) + hello)
        if len(one.recv(65536)) < 8:
            row(suite="crowd", error=f"connection {len(sockets)} was refused")
            return
        sockets.append(one)
    time.sleep(3)
    status = open(f"/proc/{pid}/status").read()
    row(suite="crowd", rss_mb=int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) // 1024)


if __name__ == "__main__":
    {"transactions": transactions, "rebalance": rebalance, "crowd": crowd}[sys.argv[3]](sys.argv[1], int(sys.argv[2]))
