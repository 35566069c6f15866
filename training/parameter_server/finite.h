// Looks for what would spoil a model for good: a NaN or an infinity among gradients or values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "muster/collective/result.h"

namespace muster::parameter_server {

/// The index of the first NaN or infinity; nothing where all are finite.
std::optional<std::size_t> first_not_finite(std::span<const float> values);

/// kBadArgument: the push of `worker` is refused for `value`, which is `where` ("element 7 of
/// 'w'").
collective::Error not_finite(float value, const std::string& where, int worker);

}  // namespace muster::parameter_server
