// libmuster_collective. Its world comes from the MUSTER_* variables or from the launcher's.
//
//   --arena=1     buffers from allocate_shared()
//   --session=1   asynchronous: operations are handed over by name and waited for. A buffer of the
//                 size of ResNet-50 is divided into its tensors, the last one first as in
//                 backpropagation; other buffers are one tensor
//   --idle=S      instead of calls: the processor time of a process with a session that does
//                 nothing for S seconds, as a share of a core
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <thread>

#include "core.h"
#include "muster/collective/communicator.h"
#include "muster/collective/session.h"
#include "quiet.h"
#include "resnet50.h"

namespace {

using muster::collective::Communicator;
using muster::collective::DataType;
using muster::collective::Reduction;
using muster::collective::Session;
using muster::collective::Ticket;

DataType type_of(bench::Type type) {
  switch (type) {
    case bench::Type::kFloat32:
      return DataType::kFloat32;
    case bench::Type::kFloat16:
      return DataType::kFloat16;
    case bench::Type::kBFloat16:
      return DataType::kBFloat16;
  }
  bench::fail("unknown type");
}

Communicator connect() {
  auto options = muster::collective::bootstrap_from_environment();
  bench::need(options);
  auto world = Communicator::connect(*options);
  bench::need(world);
  return std::move(*world);
}

Session start_session() {
  auto session = Session::start(connect());
  bench::need(session);
  return std::move(*session);
}

// `owner` is a Communicator or a Session.
template <typename Owner>
bench::Subject subject_in(Owner& owner, bool arena) {
  bench::Subject subject;
  if (arena) {
    subject.allocate = [&owner](std::uint64_t bytes) { return owner.allocate_shared(bytes); };
    subject.release = [&owner](void* memory) { owner.free_shared(memory); };
  }
  return subject;
}

bench::Subject blocking(Communicator& world, DataType type, bool arena) {
  bench::Subject subject = subject_in(world, arena);
  subject.prepare = [&world, type](const void* in, void* out, std::uint64_t bytes) {
    const std::uint64_t count = bytes / size_of(type);
    return [=, &world] { bench::need(world.all_reduce(in, out, count, type, Reduction())); };
  };
  return subject;
}

struct Named {
  std::string name;
  std::uint64_t start;  // element
  std::uint64_t count;
};

// Each size has names of its own, since a name stands for one shape.
std::vector<Named> tensors_of(std::uint64_t count) {
  static int generation = 0;
  const std::string prefix = "size" + std::to_string(generation++) + ".gradient";
  std::vector<std::uint64_t> lengths = bench::resnet50_tensors();
  const auto all = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  if (count != all) lengths = {count};
  std::vector<Named> tensors;
  std::uint64_t start = 0;
  for (const std::uint64_t length : lengths) {
    tensors.push_back({prefix + std::to_string(tensors.size()), start, length});
    start += length;
  }
  return {tensors.rbegin(), tensors.rend()};
}

void reduce_all(Session& session, const std::vector<Named>& tensors, std::vector<Ticket>& tickets,
                const char* in, char* out, DataType type) {
  tickets.clear();
  for (const Named& tensor : tensors) {
    const std::uint64_t offset = tensor.start * size_of(type);
    auto ticket =
        session.all_reduce(tensor.name, in + offset, out + offset, tensor.count, type, Reduction());
    bench::need(ticket);
    tickets.push_back(*ticket);
  }
  for (const Ticket ticket : tickets) bench::need(session.wait(ticket));
}

bench::Subject asynchronous(Session& session, DataType type, bool arena) {
  bench::Subject subject = subject_in(session, arena);
  subject.prepare = [&session, type](const void* in, void* out, std::uint64_t bytes) {
    return [&session, type, tensors = tensors_of(bytes / size_of(type)),
            tickets = std::vector<Ticket>(), from = static_cast<const char*>(in),
            to = static_cast<char*>(out)]() mutable {
      reduce_all(session, tensors, tickets, from, to, type);
    };
  };
  return subject;
}

void measure_idleness(Session& session, bench::Page& page, std::chrono::seconds span) {
  // One operation, so that no work of the start remains.
  float value = 1;
  auto ticket = session.all_reduce("first", &value, &value, 1, DataType::kFloat32, Reduction());
  bench::need(ticket);
  bench::need(session.wait(*ticket));
  // Work that the start has caused ends within milliseconds. After that, idleness itself is
  // measured.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double before = bench::own_processor_time();
  std::this_thread::sleep_for(span);
  const double used = page.largest(bench::own_processor_time() - before);
  if (session.rank() == 0) {
    std::printf("{\"idle\": %.6f, \"seconds\": %lld}\n", used / static_cast<double>(span.count()),
                static_cast<long long>(span.count()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  const bench::Plan plan = bench::plan_from(arguments);
  bench::Page page(plan.page, plan.rank, plan.ranks, plan.cores);
  const DataType type = type_of(plan.type);
  const bool arena = arguments.number("arena", 0) != 0;
  if (const auto seconds = arguments.number("idle", 0); seconds > 0) {
    auto session = start_session();
    measure_idleness(session, page, std::chrono::seconds(seconds));
  } else if (arguments.number("session", 0) != 0) {
    auto session = start_session();
    bench::measure(plan, page, asynchronous(session, type, arena));
    page.meet();
  } else {
    Communicator world = connect();
    bench::measure(plan, page, blocking(world, type, arena));
    page.meet();
  }
  return 0;
}
