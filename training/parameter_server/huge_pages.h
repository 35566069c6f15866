// Memory for values in huge pages, where the system has them: what goes through tens of megabytes
// from end to end is up to half as fast again with them, in virtual machines above all.
#pragma once

#include <cstddef>
#include <vector>

namespace muster::parameter_server {

/// Zeros. Throws std::bad_alloc where there is no memory for them.
std::vector<float> zeros(std::size_t count);

}  // namespace muster::parameter_server
