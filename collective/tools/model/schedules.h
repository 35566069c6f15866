// The time of an all_reduce of float32 on a network, by algorithm. The programs are those that the
// library plans (tcp/plan.h), and the hierarchy has the stages of HierarchicalBackend.
//
// The tree is not in the library, but for comparison: two binary trees over half of the elements
// each, in which every rank is a leaf of one tree; P. Sanders, J. Speck, J. L. Traeff, "Two-tree
// algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009.
//
// Pure.
#pragma once

#include <cstdint>
#include <map>

#include "network.h"
#include "tcp/plan.h"

namespace muster::collective::model {

/// Reduces up two trees, and sends the result down.
tcp::Program plan_two_trees(tcp::Place place, tcp::Extent extent, const tcp::Steps& steps);

/// From rank to rank over the network, without regard to hosts. Sizes are rounded up to equal
/// slices of whole elements.
double time_of_flat(const Network& network, tcp::Algorithm algorithm, int ranks,
                    std::uint64_t bytes);

/// Sizes above some MiB are extrapolated: the time of a full pipeline is linear in the size.
double time_of_trees(const Network& network, int ranks, std::uint64_t bytes);

/// What the library does with some ranks on each of several hosts: in chunks, one after the other,
/// a reduce_scatter in the memory of the host, an all_reduce of each slice between hosts, and an
/// all_gather in memory. With one rank on each host only the second stage is left.
class Hierarchy {
 public:
  /// The number of ranks is a multiple of the ranks of a host.
  Hierarchy(const Network& network, int ranks) : network_(network), ranks_(ranks) {}

  double time_of(std::uint64_t bytes);

  /// The algorithm that the library chooses between hosts.
  tcp::Algorithm between_hosts(std::uint64_t bytes) const;

 private:
  int hosts() const { return ranks_ / network_.ranks_per_host; }
  std::uint64_t slice_of(std::uint64_t bytes) const;
  double time_of_chunk(std::uint64_t bytes);
  double time_on_host(std::uint64_t bytes) const;
  double time_between_hosts(std::uint64_t slice) const;

  Network network_;
  int ranks_;
  std::map<std::uint64_t, double> known_ = {};  // times of chunks
};

}  // namespace muster::collective::model
