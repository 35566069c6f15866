// Checks the MPI plug-in under the mpirun that starts it:
//
//   MUSTER_COLLECTIVE_TRANSPORT=mpi mpirun -np 2 collective_mpi_check
//
// First checks a Communicator, then the plug-in alone with calls that are divided into parts of 64
// bytes, as calls above 1 GiB are. Exits with 0 if all results are right.
#include <cstdio>
#include <cstring>
#include <vector>

#include "plugins/check.h"
#include "plugins/loader.h"
#include "plugins/plugin_backend.h"
#include "tcp/tcp_backend.h"
#include "world/join.h"

namespace muster::collective {
namespace {

int report_mpi_failure(const Error& error) {
  std::fprintf(stderr, "collective_mpi_check: %s\n", error.to_string().c_str());
  return 1;
}

Lookup process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

Status check_cut(World& world, Backend& backend) {
  std::vector<double> sums(1000, world.rank + 1);
  auto* const bytes = reinterpret_cast<std::byte*>(sums.data());
  const Piece piece{bytes, bytes, sums.size()};
  const Call reduce{.kind = CallKind::kAllReduce,
                    .type = DataType::kFloat64,
                    .reduction = ReduceOp::kSum,
                    .count = sums.size(),
                    .sequence = 1};
  if (Status done = backend.all_reduce(reduce, {&piece, 1}); !done) return done;
  const std::vector<std::uint64_t> lengths(static_cast<std::size_t>(world.size), 1000);
  std::vector<std::byte> part(1000, static_cast<std::byte>(world.rank));
  std::vector<std::byte> all(lengths.size() * 1000);
  const Call gather{.kind = CallKind::kAllGather, .count = all.size(), .sequence = 2};
  if (Status done = backend.all_gather(gather, part.data(), all.data(), lengths); !done)
    return done;
  bool is_right = sums.front() == sums.back() && 2 * sums[0] == world.size * (world.size + 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    is_right = is_right && all[i] == static_cast<std::byte>(i / 1000);
  }
  if (is_right) return {};
  return Error{ErrorCode::kSystem, "divided calls have wrong results"};
}

Status check_plugin_alone(Options options) {
  options.transport = "tcp";
  Result<std::unique_ptr<World>> world = join(options, [](int, std::uint64_t) { return 0; });
  if (!world) return world.error();
  const Result<std::string> name = plugin_named("mpi", process_environment());
  if (!name) return name.error();
  const Result<const MusterPlugin*> plugin =
      load_module(*name, plugin_files(*name, process_environment()));
  if (!plugin) return plugin.error();
  Result<std::unique_ptr<PluginBackend>> backend =
      PluginBackend::open(**world, **plugin, std::make_unique<tcp::TcpBackend>(**world),
                          {.most_bytes = 64, .exchange_bytes = 100, .fusion_bytes = 64});
  if (!backend) return backend.error();
  return check_cut(**world, **backend);
}

int check_mpi() {
  const Result<Options> options = bootstrap_from_environment();
  if (!options) return report_mpi_failure(options.error());
  {
    Result<Communicator> world = Communicator::connect(*options);
    if (!world) return report_mpi_failure(world.error());
    if (world->rank() == 0) {
      std::printf("%s\n", world->explain(DataType::kFloat32, 1 << 20).c_str());
    }
    if (!check_collectives(*world)) return 1;
  }
  const Status alone = check_plugin_alone(*options);
  return alone ? 0 : report_mpi_failure(alone.error());
}

}  // namespace
}  // namespace muster::collective

int main() {
  return muster::collective::check_mpi();
}
