// Worlds for tests of training: N ranks as N threads of one process, each with a session.
#pragma once

#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <utility>

#include "muster/collective/session.h"

namespace muster::training {

/// Runs `body` on each rank of a new world. A rank that cannot start is a failure of the calling
/// test.
inline void spawn_sessions(int size, const std::function<void(collective::Session&)>& body) {
  torch::set_num_threads(1);
  collective::testing::spawn_ranks(size, [&](collective::Communicator& world) {
    auto session = collective::Session::start(std::move(world));
    ASSERT_TRUE(session) << session.error().to_string();
    body(*session);
  });
}

/// The largest difference of two tensors of one shape.
inline double distance(const torch::Tensor& a, const torch::Tensor& b) {
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

}  // namespace muster::training
