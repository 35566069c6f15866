#include "tcp/mesh.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

namespace muster::collective::tcp {

Mesh::Mesh(World& world, std::vector<int> members) : world_(world), members_(std::move(members)) {
  rank_ = static_cast<int>(std::ranges::find(members_, world.rank) - members_.begin());
  may_spin_ =
      world.topology.neighbours_of(world.rank).size() <= std::thread::hardware_concurrency();
}

int Mesh::crowd() const {
  std::map<int, int> members_on;
  int most = 1;
  for (const int member : members_) {
    const int host = world_.topology.host_of[static_cast<std::size_t>(member)];
    most = std::max(most, ++members_on[host]);
  }
  return most;
}

std::vector<int> everyone_in(const World& world) {
  std::vector<int> everyone(static_cast<std::size_t>(world.size));
  std::iota(everyone.begin(), everyone.end(), 0);
  return everyone;
}

}  // namespace muster::collective::tcp
