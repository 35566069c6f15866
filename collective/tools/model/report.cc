#include "report.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "schedules.h"
#include "training.h"

namespace muster::collective::model {
namespace {

using tcp::Algorithm;

// Of more ranks, direct needs thousands of connections for each rank.
constexpr int kMostForDirect = 512;

// A way to reduce, with its time in microseconds.
struct Way {
  std::string name;
  double time;
};

// One row of the table.
struct Reduced {
  double gbit;
  int ranks;
  std::uint64_t bytes;
  std::vector<Way> ways;     // in the order of the columns; a negative time: not simulated
  std::string between = {};  // hosts: the algorithm that the library chooses

  const Way& fastest() const {
    const auto cost = [](const Way& way) { return way.time < 0 ? 1e300 : way.time; };
    return *std::ranges::min_element(ways, {}, cost);
  }
};

Reduced reduce(const Network& network, double gbit, int ranks, std::uint64_t bytes,
               Hierarchy& hierarchy) {
  const auto flat = [&](Algorithm algorithm) {
    return Way{std::string(to_string(algorithm)), time_of_flat(network, algorithm, ranks, bytes)};
  };
  const bool exchanges =
      ranks == 2 || bytes * static_cast<std::uint64_t>(ranks - 1) <= tcp::kMostToExchange;
  Reduced row = {gbit, ranks, bytes, {}};
  row.ways.push_back(exchanges ? flat(Algorithm::kExchange) : Way{"exchange", -1});
  row.ways.push_back(ranks <= kMostForDirect ? flat(Algorithm::kDirect) : Way{"direct", -1});
  row.ways.push_back(flat(Algorithm::kDoubling));
  row.ways.push_back(flat(Algorithm::kRabenseifner));
  row.ways.push_back(flat(Algorithm::kRing));
  row.ways.push_back({"trees", time_of_trees(network, ranks, bytes)});
  row.between = to_string(hierarchy.between_hosts(bytes));
  row.ways.push_back({"hierarchy", hierarchy.time_of(bytes)});
  return row;
}

std::string short_bytes(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"", " Ki", " Mi", " Gi"};
  int unit = 0;
  while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

void print_row(const Reduced& row, bool json) {
  if (json) {
    std::printf("{\"gbit\": %g, \"ranks\": %d, \"bytes\": %llu", row.gbit, row.ranks,
                static_cast<unsigned long long>(row.bytes));
    for (const Way& way : row.ways) {
      if (way.time >= 0) std::printf(", \"%s_us\": %.3f", way.name.c_str(), way.time);
    }
    std::printf(", \"between_hosts\": \"%s\", \"fastest\": \"%s\"}\n", row.between.c_str(),
                row.fastest().name.c_str());
  } else {
    std::printf("%6g %6d %8s", row.gbit, row.ranks, short_bytes(row.bytes).c_str());
    for (const Way& way : row.ways) {
      if (way.time < 0) {
        std::printf(" %12s", "-");
      } else {
        std::printf(" %12.0f", way.time);
      }
    }
    std::printf("  %-12s  %s\n", row.between.c_str(), row.fastest().name.c_str());
  }
  std::fflush(stdout);
}

void print_table_head(const Network& network) {
  std::printf("# all_reduce of float32, simulated; microseconds\n");
  std::printf("# %d ranks on each host share its port; latency %g us; a processor sends or\n",
              network.ranks_per_host, network.message + network.latency);
  std::printf("# receives %.3g GB/s and reduces %.3g GB/s\n", 1 / network.touched_byte / 1000,
              1 / network.reduced_byte / 1000);
  std::printf("%6s %6s %8s %12s %12s %12s %12s %12s %12s %12s  %-12s  %s\n", "Gbit/s", "ranks",
              "bytes", "exchange", "direct", "doubling", "rabenseifner", "ring", "trees",
              "hierarchy", "between", "fastest");
}

// The fastest algorithm by ranks (down) and bytes (across), and how much longer the library takes.
void print_fastest(const std::vector<Reduced>& rows, const std::vector<std::uint64_t>& sizes,
                   double gbit) {
  std::printf("\n# fastest at %g Gbit/s, and the library's time (hierarchy) relative to it\n",
              gbit);
  std::printf("%6s", "ranks");
  for (const std::uint64_t bytes : sizes) std::printf(" %18s", short_bytes(bytes).c_str());
  int ranks = 0;
  for (const Reduced& row : rows) {
    if (row.gbit != gbit) continue;
    if (row.ranks != ranks) std::printf("\n%6d", row.ranks);
    ranks = row.ranks;
    std::printf(" %12s %5.2f", row.fastest().name.c_str(),
                row.ways.back().time / row.fastest().time);
  }
  std::printf("\n");
}

Network with_bandwidth(Network network, double gbit) {
  network.byte = 8 / (gbit * 1000);
  return network;
}

void print_training(const Request& request) {
  std::vector<double> gbits = request.gbits;
  const auto has_known = std::ranges::any_of(gbits, [](double gbit) { return gbit == 25; });
  if (!has_known) gbits.push_back(25);
  std::ranges::sort(gbits);
  std::vector<int> ranks = request.ranks;
  std::erase_if(ranks, [](int one) { return one > 512; });
  if (!request.json) {
    std::printf("\n# training: efficiency (throughput relative to as many single ranks)\n");
    std::printf("# a third of a step forward, two thirds backward, during which gradients are\n");
    std::printf("# reduced by the library; no ranks that are late: upper limits\n");
    std::printf("%-18s %-28s %8s %7s", "model", "step", "step ms", "Gbit/s");
    for (const int one : ranks) std::printf(" %5d", one);
    std::printf("  Horovod, 512\n");
  }
  for (const Training& training : kTrainings) {
    for (const double gbit : gbits) {
      if (training.published > 0 && gbit != 25) continue;
      if (!request.json) {
        std::printf("%-18s %-28s %8.0f %7g", training.name, training.step, training.step_ms, gbit);
      }
      for (const int one : ranks) {
        Hierarchy hierarchy(with_bandwidth(request.network, gbit), one);
        const double found = efficiency(training, hierarchy);
        if (request.json) {
          std::printf("{\"model\": \"%s\", \"gbit\": %g, \"ranks\": %d, \"efficiency\": %.4f}\n",
                      training.name, gbit, one, found);
        } else {
          std::printf(" %5.2f", found);
        }
      }
      if (request.json) continue;
      std::printf(training.published > 0 ? "  %.2f\n" : "\n", training.published);
      std::fflush(stdout);
    }
  }
}

}  // namespace

void print_simulation(const Request& request, const std::vector<std::uint64_t>& sizes) {
  if (!request.json) print_table_head(request.network);
  std::vector<Reduced> rows;
  for (const double gbit : request.gbits) {
    const Network network = with_bandwidth(request.network, gbit);
    for (const int ranks : request.ranks) {
      Hierarchy hierarchy(network, ranks);
      for (const std::uint64_t bytes : sizes) {
        rows.push_back(reduce(network, gbit, ranks, bytes, hierarchy));
        print_row(rows.back(), request.json);
      }
    }
  }
  if (!request.json) {
    for (const double gbit : request.gbits) print_fastest(rows, sizes, gbit);
  }
  print_training(request);
}

}  // namespace muster::collective::model
