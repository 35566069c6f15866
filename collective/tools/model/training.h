// The scaling of data-parallel training: the time of a step on many ranks, whose gradients are
// averaged while the backward pass continues.
//
// A step computes for `step_ms` on each rank: a third forward, two thirds backward. The gradients
// are `tensors` of equal length, which become ready at equal intervals of the backward pass. They
// are reduced one after the other: whenever a reduction has ended, all tensors that are ready are
// reduced together, up to the limit of fusion. The step ends when the last reduction has ended.
//
// Not modelled: ranks that are late, input that is late, processor time that the reduction takes
// from the computation, and copies between the memories of GPU and host. The efficiency is therefore
// an upper limit.
//
// Pure.
#pragma once

#include <array>
#include <cstdint>

#include "schedules.h"

namespace muster::collective::model {

struct Training {
  const char* name;
  double parameters;
  int tensors;
  double step_ms;        // on one rank
  const char* step;      // where it comes from
  double published = 0;  // the efficiency of Horovod with 512 GPUs and 25 Gbit/s, if known
};

/// The images per second of one Tesla P100 (batch 64, float32) are those of TensorFlow's benchmarks
/// of May 2017, those of ResNet-101 a sixteenth of what Horovod's page of benchmarks gives for 16
/// GPUs. Horovod's efficiencies are from that page, too.
inline constexpr std::array<Training, 6> kTrainings = {{
    {"ResNet-50", 25.6e6, 161, 64 / 219.0 * 1000, "64 images, P100 at 219/s"},
    {"ResNet-50, A100", 25.6e6, 161, 256 / 2500.0 * 1000, "256 images, A100 at 2,500/s"},
    {"transformer 1.3 B", 1.3e9, 292, 6 * 1.3e9 * 16384 / 125e12 * 1000,
     "16,384 tokens, 125 TFLOP/s"},
    {"Inception V3", 23.8e6, 190, 64 / 142.0 * 1000, "64 images, P100 at 142/s", 0.90},
    {"ResNet-101", 44.5e6, 314, 64 / (1656.82 / 16) * 1000, "64 images, P100 at 104/s", 0.90},
    {"VGG-16", 138.4e6, 32, 64 / 154.0 * 1000, "64 images, P100 at 154/s", 0.68},
}};

/// The default limit of fusion of a Session (session/engine.cc).
inline constexpr std::uint64_t kFusionBytes = std::uint64_t{32} << 20;

/// The time on one rank divided by the time on the ranks of `hierarchy`. Gradients travel as
/// float32, which is how the library reduces 16-bit types between hosts, too.
double efficiency(const Training& training, Hierarchy& hierarchy,
                  std::uint64_t fusion_bytes = kFusionBytes);

}  // namespace muster::collective::model
