// Work in many equal parts, shared among threads.
#pragma once

#include <cstddef>
#include <functional>

namespace muster::parameter_server {

/// Calls `work(0)` .. `work(parts - 1)`, each once, on up to `threads` threads, of which this one
/// is the first. `work` may be called from several at once, and throws nothing.
void share(std::size_t parts, std::size_t threads, const std::function<void(std::size_t)>& work);

}  // namespace muster::parameter_server
