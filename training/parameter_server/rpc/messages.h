// Between what this code works with and what protobuf carries.
#pragma once

#include <parameter_server.pb.h>

#include <cstdint>
#include <span>
#include <vector>

#include "muster/parameter_server/status.h"
#include "parameter_server/catalogue.h"
#include "parameter_server/model.h"

namespace muster::parameter_server {

/// Workers are numbered from 0, and not beyond.
inline constexpr std::uint32_t kHighestWorker = 1'000'000;

v1::Declaration to_message(const Declaration& declaration);

/// Errors: kBadArgument for what check() refuses, and a place that is none.
collective::Result<Declaration> from_message(const v1::Declaration& message);

v1::StatusResponse to_message(const ServerStatus& status);
ServerStatus from_message(const v1::StatusResponse& message);

/// Of a PullRequest or PushHead.
template <typename Message>
void add_tensors(std::span<const NamedTensor> tensors, Message& message) {
  for (const NamedTensor& tensor : tensors) {
    auto* const named = message.add_tensors();
    named->set_name(tensor.name);
    named->set_elements(tensor.elements);
  }
}

template <typename Message>
std::vector<NamedTensor> tensors_of(const Message& message) {
  std::vector<NamedTensor> tensors;
  for (const auto& named : message.tensors()) tensors.push_back({named.name(), named.elements()});
  return tensors;
}

}  // namespace muster::parameter_server
