#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>
#include <unistd.h>

#include <thread>

#include "transport/socket.h"

namespace muster::collective::testing {
namespace {

std::string address_of_this_process() {
  const int pid = ::getpid();
  return "127." + std::to_string(64 + pid / 256 % 128) + "." + std::to_string(pid % 256) + ".1";
}

}  // namespace

std::vector<Options> world_of(int size, std::chrono::milliseconds timeout) {
  Result<std::vector<Address>> address = resolve(address_of_this_process() + ":0");
  Result<Descriptor> listener = listen_on(address->front());
  const std::string endpoint = local_address(listener->get()).to_string();
  std::vector<Options> world;
  for (int rank = 0; rank < size; ++rank) {
    world.push_back({.rank = rank,
                     .size = size,
                     .rendezvous = endpoint,
                     .key = "000102030405060708090a0b0c0d0e0f",
                     .host = "host-" + std::to_string(rank),
                     .timeout = timeout});
  }
  // A world of one meets nobody and would not take the listener over.
  if (size > 1) world[0].listener = listener->release();
  return world;
}

void on_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
}

void spawn_ranks(int size, const std::function<void(Communicator&)>& body,
                 std::chrono::milliseconds timeout) {
  const std::vector<Options> world = world_of(size, timeout);
  on_threads(size, [&](int rank) {
    Result<Communicator> communicator =
        Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(communicator) << communicator.error().to_string();
    body(*communicator);
  });
}

}  // namespace muster::collective::testing
