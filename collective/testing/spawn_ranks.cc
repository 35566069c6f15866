#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>

namespace muster::collective::testing {

void spawn_ranks(int size, const std::function<void(Communicator&)>& body,
                 std::chrono::milliseconds timeout, Placement placement) {
  const std::vector<Options> world = world_of(size, timeout, placement);
  on_threads(size, [&](int rank) {
    Result<Communicator> communicator =
        Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(communicator) << communicator.error().to_string();
    body(*communicator);
  });
}

}  // namespace muster::collective::testing
