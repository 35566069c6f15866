// For tests: records the events of a DockerClient's streams, on the loop of a test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/test_loop.h"
#include "engine/container/docker_client.h"

namespace muster::engine {

/// The recorded events of a stream. Dropping it drops the stream.
struct RecordedStream {
  std::string output;
  std::string error;
  bool ended = false;
  std::unique_ptr<DockerStream> stream;
};

inline DockerStream::Handlers listen_by(base::TestLoop& loop, RecordedStream& recorded) {
  return {.on_output =
              [&](std::string_view bytes, bool is_error) {
                (is_error ? recorded.error : recorded.output) += bytes;
                loop.look();
              },
          .on_end =
              [&] {
                EXPECT_FALSE(recorded.ended) << "it has ended twice";
                recorded.ended = true;
                loop.look();
              },
          .on_drain = [&] { loop.look(); }};
}

}  // namespace muster::engine
