"""The algorithms as plainly as they can be written, bins as lists: what the fast structures must agree with."""


def load(problem, partitions):
    return sum(problem.speeds[p] for p in partitions)


def fitting(problem, bins, partition):
    room = problem.capacity - problem.speeds[partition]
    return [number for number in sorted(bins) if load(problem, bins[number]) <= room]


def first(problem, bins, able):
    return able[0]


def worst(problem, bins, able):
    return min(able, key=lambda number: (load(problem, bins[number]), number))


def best(problem, bins, able):
    return min(able, key=lambda number: (-load(problem, bins[number]), number))


def new_number(problem, bins, partition):
    current = problem.current.get(partition)
    return current if current is not None and current not in bins else min(set(range(1, 10_000)) - bins.keys())


def assign_bin(problem, bins, partition, choose):
    able = fitting(problem, bins, partition)
    number = choose(problem, bins, able) if able else new_number(problem, bins, partition)
    bins.setdefault(number, []).append(partition)


def any_fit(problem, partitions, choose):
    bins = {}
    for partition in partitions:
        assign_bin(problem, bins, partition, choose)
    return bins


def next_fit(problem, partitions):
    bins, last = {1: []}, 1
    for partition in partitions:
        if bins[last] and last not in fitting(problem, bins, partition):
            last = new_number(problem, bins, partition)
        bins.setdefault(last, []).append(partition)
    return {number: held for number, held in bins.items() if held}


def decreasing(problem, partitions):
    return sorted(partitions, key=lambda p: (-problem.speeds[p], p))


def modified(problem, choose, measure):
    """Line by line as Algorithm 1 has it."""
    groups, unassigned, bins = {}, [], {}
    for partition in sorted(problem.speeds):
        if partition in problem.current:
            groups.setdefault(problem.current[partition], []).append(partition)
        else:
            unassigned.append(partition)
    for consumer in sorted(groups, key=lambda c: (-measure(problem.speeds[p] for p in groups[c]), c)):
        pset = decreasing(problem, groups[consumer])
        while pset and (able := fitting(problem, bins, pset[-1])):
            bins[choose(problem, bins, able)].append(pset.pop())
        if not pset:
            continue
        bins[consumer] = [pset.pop(0)]
        while pset and consumer in fitting(problem, bins, pset[0]):
            bins[consumer].append(pset.pop(0))
        unassigned.extend(pset)
    for partition in decreasing(problem, unassigned):
        assign_bin(problem, bins, partition, choose)
    return bins


def pack(name, problem):
    """The bins, number -> partitions; a shuffled list is taken in order."""
    fits = {"f": first, "b": best, "w": worst}
    if name.startswith("m"):
        return modified(problem, fits[name[1]], max if name.endswith("p") else sum)
    partitions = decreasing(problem, problem.speeds) if name.endswith("d") else sorted(problem.speeds)
    return next_fit(problem, partitions) if name[0] == "n" else any_fit(problem, partitions, fits[name[0]])
