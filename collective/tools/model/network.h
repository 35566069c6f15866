// A model of a cluster's network, on which the programs of the library's algorithms (tcp/program.h)
// are executed with a virtual clock instead of sockets.
//
// Hosts have some ranks each and one network port (NIC), which sends and receives at the same time.
// The ports lead to switches; switches are joined by uplinks, which the hosts of a switch share.
//
//   rank's processor -> NIC -> [uplink -> downlink] -> NIC -> rank's processor -> merge
//
// Messages travel in cells. A connection has at most one cell waiting for the NIC, so connections
// share it fairly. Each station serves one cell at a time, in order of arrival, and passes it on
// while it arrives (cut-through): without contention a message of S bytes takes
//
//   message + latency + S * byte
//
// from one host to another. A rank sends bytes as soon as they have been received or reduced, as
// the library does. Not modelled: lost packets, congestion control, limits of buffers, and ranks
// that are late.
//
// Pure: no clock, no threads, no I/O.
#pragma once

#include <cstdint>
#include <functional>

#include "tcp/cost_model.h"
#include "tcp/program.h"

namespace muster::collective::model {

/// Times in microseconds; a byte's time is the inverse of a bandwidth (1.0 / 1'000: 1 GB/s).
struct Network {
  int ranks_per_host = 1;
  int hosts_per_switch = 0;  // 0: all hosts are connected to one switch

  double latency = 27;        // from one host to another, without the sender's `message`
  double hop = 1;             // more latency for each of the two uplinks of a path
  double byte = 1.0 / 1'250;  // of a NIC, in each direction: 10 Gbit/s
  double burst = 0;           // bytes that a NIC may save up in pauses and send at once (tc tbf)
  double uplink_byte = 0;     // of a switch's uplinks together, in each direction; 0: not limited
  double local_latency = 1;   // between ranks of one host
  double local_byte = 1.0 / 8'000;

  double message = 3;                  // of a processor, to start sending on an idle connection
  double touched_byte = 1.0 / 10'000;  // of a processor, to send or to receive a byte
  double reduced_byte = 1.0 / 8'000;   // of a processor, to reduce a byte of one more input

  /// The costs that the library would measure on this network (tcp::probe).
  tcp::Costs costs() const {
    return {.latency = message + latency,
            .message = message,
            .byte = byte,
            .reduced_byte = reduced_byte};
  }
};

/// Ranks that do the same at the same time. With a symmetry only the ranks of one host are executed
/// (of one switch, if there are several), and stand for all others.
enum class Symmetry : std::uint8_t {
  kNone,
  kShift,  // rank r does with r + d what rank 0 does with d
  kFlip,   // rank r does with r ^ d what rank 0 does with d; requires powers of two
};

struct Outcome {
  double microseconds = 0;          // until the last rank has its result
  bool complete = false;            // false: a program waits for something that never happens
  std::uint64_t network_bytes = 0;  // that the executed hosts have sent to other hosts
};

/// Executes `program(rank)` on each of `ranks` ranks. The ranks of a host are neighbours. `cell`: the
/// most bytes of a cell, if the execution would otherwise use larger cells to save time.
Outcome execute(const Network& network, int ranks, Symmetry symmetry,
                const std::function<tcp::Program(int rank)>& program,
                std::uint64_t cell = ~std::uint64_t{0});

}  // namespace muster::collective::model
