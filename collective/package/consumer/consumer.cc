// consumer RANK FILE: one of two ranks that meet by FILE and add up their ranks.
#include <muster/collective/communicator.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

int main(int count, char** words) {
  using namespace muster::collective;
  if (count != 3) return 2;
  const int rank = std::atoi(words[1]);
  Result<Communicator> world = Communicator::connect(
      {.rank = rank, .size = 2, .rendezvous_file = words[2], .timeout = std::chrono::seconds(30)});
  if (!world) {
    std::fprintf(stderr, "consumer: %s\n", world.error().to_string().c_str());
    return 1;
  }
  float value = static_cast<float>(rank) + 1;
  const Status added = world->all_reduce(&value, 1, ReduceOp::kSum);
  return added && value == 3 ? 0 : 1;
}
