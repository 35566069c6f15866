#include "control/graph.h"

#include <set>

namespace muster::collective {

std::vector<int> neighbours_of(int rank, int size) {
  std::set<int> found;
  if (size <= kMostComplete) {
    for (int other = 0; other < size; ++other) found.insert(other);
  } else {
    for (int distance = 1; distance < size; distance *= 2) {
      found.insert((rank + distance) % size);
      found.insert((rank + size - distance) % size);
    }
  }
  found.erase(rank);
  return {found.begin(), found.end()};
}

std::vector<int> successors_of(int rank, int size, const std::function<bool(int)>& absent) {
  std::set<int> found;
  for (int distance = 1; distance < size; distance *= 2) {
    int steps = distance;
    while (steps < size && absent((rank + steps) % size)) ++steps;
    if (steps < size) found.insert((rank + steps) % size);
  }
  return {found.begin(), found.end()};
}

}  // namespace muster::collective
