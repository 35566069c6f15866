// What a session costs and moves, on this host, with ranks that are processes:
//
//   session_bench [ranks [rounds]]     2 ranks, 20 rounds
//
//   small     4 bytes, from submit to the end of wait()
//   model     148 tensors of sizes like ResNet-50's, about 100 MB, all submitted, then all waited
//   for; in
//             ordinary buffers and in the shared arena
//   idle      processor time of an idle process
//
// Buffers are rewritten before each step. Medians, and the 10th percentile.
#include <muster/collective/testing/worlds.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "session/session_world.h"
#include "world/join.h"

namespace muster::collective::session {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

// Elements of the gradients of ResNet-50 with its batch norms folded into pairs: what it has of
// each size.
std::vector<std::size_t> gradients() {
  std::vector<std::size_t> lengths = {9408, 128};
  const auto add = [&](std::size_t times, std::initializer_list<std::size_t> block) {
    for (std::size_t i = 0; i < times; ++i) lengths.insert(lengths.end(), block);
  };
  add(3, {16'384, 128, 36'864, 128, 16'384, 512});
  add(4, {65'536, 256, 147'456, 256, 65'536, 1024});
  add(6, {262'144, 512, 589'824, 512, 262'144, 2048});
  add(3, {1'048'576, 1024, 2'359'296, 1024, 1'048'576, 4096});
  add(1, {16'384, 131'072, 524'288, 2'097'152});
  add(1, {2'048'000, 1000});
  while (lengths.size() < 148) lengths.push_back(1024);
  return lengths;
}

void print(const char* what, std::vector<double> times, const char* unit, std::string_view more) {
  std::ranges::sort(times);
  std::printf("%-28s median %10.2f %s, 10th percentile %10.2f %s%s\n", what,
              times[times.size() / 2], unit, times[times.size() / 10], unit,
              std::string(more).c_str());
}

void small(Session& session, int rounds) {
  std::vector<double> times;
  float value = 0;
  for (int i = 0; i < rounds * 1000; ++i) {
    value = static_cast<float>(i);
    const auto begin = std::chrono::steady_clock::now();
    const auto ticket =
        session.all_reduce("small", &value, &value, 1, DataType::kFloat32, ReduceOp::kSum);
    if (!ticket || !session.wait(*ticket)) std::exit(1);
    times.push_back(Microseconds(std::chrono::steady_clock::now() - begin).count());
  }
  if (session.rank() == 0) print("4 bytes", times, "us", "");
}

void model(Session& session, int rounds, bool in_arena) {
  const std::vector<std::size_t> lengths = gradients();
  std::vector<std::vector<float>> owned;
  std::vector<float*> tensors;
  std::size_t bytes = 0;
  for (const std::size_t length : lengths) {
    bytes += length * sizeof(float);
    if (in_arena) {
      tensors.push_back(static_cast<float*>(session.allocate_shared(length * sizeof(float))));
      if (tensors.back() == nullptr) return;
    } else {
      tensors.push_back(owned.emplace_back(length).data());
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < lengths.size(); ++i) names.push_back("w" + std::to_string(i));
  std::vector<double> times;
  std::vector<Ticket> tickets(lengths.size());
  for (int round = 0; round < rounds + 2; ++round) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      std::fill_n(tensors[i], lengths[i], static_cast<float>(round));
    }
    const auto ready = session.barrier("ready");
    if (!ready || !session.wait(*ready)) std::exit(1);
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      tickets[i] = *session.all_reduce(names[i], tensors[i], tensors[i], lengths[i],
                                       DataType::kFloat32, ReduceOp::kAverage);
    }
    for (const Ticket ticket : tickets) {
      if (!session.wait(ticket)) std::exit(1);
    }
    if (round >= 2) {
      times.push_back(Microseconds(std::chrono::steady_clock::now() - begin).count() / 1000);
    }
    if (tensors[3][0] != static_cast<float>(round)) std::exit(2);
  }
  if (session.rank() != 0) return;
  print(in_arena ? "model, in the arena" : "model, ordinary buffers", times, "ms",
        ", " + std::to_string(lengths.size()) + " tensors, " + std::to_string(bytes / 1'000'000) +
            " MB");
}

void idle(Session& session) {
  const auto ready = session.barrier("idle");
  if (!ready || !session.wait(*ready)) std::exit(1);
  const auto used = [] {
    rusage usage = {};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  };
  const double before = used();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const double share = (used() - before) / 2 * 100;
  if (session.rank() == 0) std::printf("%-28s %.3f %% of a processor\n", "idle", share);
}

int run_rank(const Options& options, int rounds) {
  Result<std::unique_ptr<World>> world = join(options, session_memory);
  if (!world) return 1;
  const std::unique_ptr<Session> session = session_of(**world, Over::kSharedMemory);
  if (!session) return 1;
  small(*session, rounds);
  model(*session, rounds, false);
  model(*session, rounds, true);
  idle(*session);
  std::fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace muster::collective::session

int main(int argc, char** argv) {
  namespace session = muster::collective::session;
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  std::vector<muster::collective::Options> options =
      muster::collective::testing::world_of(ranks, muster::collective::testing::kPatience);
  for (auto& each : options) each.arena_bytes = std::uint64_t{256} << 20U;
  for (int rank = 1; rank < ranks; ++rank) {
    if (::fork() != 0) continue;
    ::close(options[0].listener);
    ::_exit(session::run_rank(options[static_cast<std::size_t>(rank)], rounds));
  }
  const int failed = session::run_rank(options[0], rounds);
  int status = 0;
  int worst = failed;
  while (::wait(&status) > 0) worst = std::max(worst, status);
  return worst == 0 ? 0 : 1;
}
