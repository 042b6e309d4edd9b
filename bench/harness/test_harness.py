"""What must hold of the harness itself: python3 -m unittest discover bench/harness"""
import contextlib
import io
import os
import types
import unittest
import xml.dom.minidom

import measure
import picture
import report
import servers
import workloads
from load import Failed
from servers import SERVERS
from workloads import Goal, Workload

TWICE = Workload("twice", "twice the floor", "requests", "hello", (Goal("cpu", 2, "hyper-headers"), Goal("cpu", 1.5, "hyper-headers")))


def row(cpu, **more):
    return {"cpu": cpu, "rate": 1000.0, "p50": 10, "p99": 20, "rss": 3.0, "rounds": [{"cpu": cpu, "rate": 1000.0}], **more}


FOUND = {"hyper": row(8.0), "hyper-headers": row(10.0), "trefoil": row(20.0, writes=7), "pocketbase": row(4000.0)}


class Harness(unittest.TestCase):
    def test_a_goal_is_reached_or_not(self):
        self.assertEqual([reached for _, _, reached in report.judged(TWICE, FOUND)], [True, False])

    def test_a_ratio_is_the_median_of_the_rounds_ratios(self):
        rows = {"a": {"rounds": [{"cpu": 2}, {"cpu": 30}, {"cpu": 6}]}, "b": {"rounds": [{"cpu": 1}, {"cpu": 10}, {"cpu": 3}]}}
        self.assertEqual(measure.ratio(rows, "cpu", "a", "b"), 2)

    def test_of_several_sizes_the_largest_counts(self):
        grown = Workload("grown", "", "requests", goals=(Goal("cpu", 1.25, "trefoil at 1,000"),), sizes=(1000, 1_000_000))
        rows = {"trefoil at 1,000": row(10.0), "trefoil at 100,000": row(11.0), "trefoil at 1,000,000": row(13.0)}
        self.assertEqual(report.judged(grown, rows)[0][1:], ("1.30", False))

    def test_a_page_keeps_the_text_around_its_tables(self):
        page = "before\n<!-- bench:goals -->\nold\n<!-- end -->\nafter\n"
        self.assertEqual(report.renewed(page, {"goals": ["new"]}),
                         "before\n<!-- bench:goals -->\n\nnew\n\n<!-- end -->\nafter\n")
        with self.assertRaises(ValueError):
            report.renewed("no marks", {"goals": ["new"]})

    def test_tables_have_a_cell_in_every_column(self):
        lines = report.table(TWICE, FOUND)
        self.assertEqual({len(line) for line in lines}, {len(lines[0])})
        self.assertIn("2.00", lines[3])
        self.assertEqual(lines[3][-1], "7")

    def test_the_picture_is_well_formed_and_tells_every_figure(self):
        drawn = picture.drawn([TWICE], {"twice": FOUND})
        texts = {node.firstChild.data for node in xml.dom.minidom.parseString(drawn).getElementsByTagName("text")}
        self.assertLessEqual({"8.0 µs", "10.0 µs", "20.0 µs", "4,000 µs", "twice the floor"}, texts)

    def test_reads_of_a_wave_are_all_different(self):
        for kind in ("getAllUsers", "products", "usersOfItem", "ordersByStatus"):
            writes, reads = workloads.waves(kind, workloads.Trefoil())
            self.assertEqual(len({request for _, request, _ in reads}), workloads.CONNECTIONS)
            self.assertEqual({kind for kind, _, _ in writes + reads}, {"w", "f"})

    def test_a_page_of_different_users_has_ordered_each_item(self):
        bought = {}
        for order in map(workloads.order, range(1, workloads.ORDERS * workloads.THOUSAND + 1)):
            bought.setdefault(order["item"], []).append(order["userId"])
        self.assertEqual(len(bought), workloads.ORDERED)
        for item in range(1, workloads.ORDERED + 1):
            buyers = [workloads.buyer(item, place) for place in range(workloads.BUYERS)]
            self.assertEqual(bought[f"Item {item}"], sorted(set(buyers)))

    def test_a_peer_that_fails_is_left_out_and_trefoil_is_not(self):
        bench = types.SimpleNamespace(options=types.SimpleNamespace(warm=0, seconds=0, rounds=2), left_out=[])

        class Entry:
            def __init__(self, server):
                self.server, self.size, self.pid = server(None), 1000, os.getpid()

        def failing(names):
            def once(instance, _):
                if instance.server.name in names:
                    raise Failed(f"{instance.server.name}: wrong answers")
                return {"cpu": 1.0}
            return once

        entries = [Entry(servers.Trefoil), Entry(servers.PocketBase), Entry(servers.Axum)]
        with contextlib.redirect_stderr(io.StringIO()):
            rows = measure.in_turns(bench, entries, failing({"pocketbase"}))
        self.assertEqual((list(rows), bench.left_out), (["trefoil", "axum"], ["pocketbase"]))
        with self.assertRaises(Failed):
            measure.in_turns(bench, entries, failing({"trefoil"}))

    def test_every_workload_names_servers_that_exist(self):
        known = {server.name for server in SERVERS}
        for workload in workloads.WORKLOADS:
            named = set(workload.only) | {goal.against.split(" at ")[0] for goal in workload.goals if goal.against}
            self.assertLessEqual(named, known, workload.name)


if __name__ == "__main__":
    unittest.main()
