// The images of a gang, brought to its hosts: each once, however many tasks run in it there.
//
// On the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/held_host.h"
#include "engine/engine.h"

namespace muster::engine {

/// See Engine::prepare(). `host_of`: nullptr where there is none of that name.
[[nodiscard]] std::shared_ptr<void> prepare_images(
    base::EventLoop& loop, const std::function<HeldHost*(const std::string& node)>& host_of,
    std::vector<ImageWish> wishes, std::function<void(const job::FetchesImage&)> progress,
    Engine::Prepared done);

/// In whole megabytes, which is as often as anybody is told. Pure.
job::FetchesImage progress_fact(const std::string& node, const std::string& image,
                                const PullProgress& progress);

}  // namespace muster::engine
