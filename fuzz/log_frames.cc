// The log of a task: frames from any bytes, and lines from any frames.
#include <sys/mman.h>

#include <string_view>

#include "base/files.h"
#include "engine/log_frame.h"
#include "logs/log_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  base::UniqueFd file(::memfd_create("log", MFD_CLOEXEC));
  if (!base::write_all(file.get(), {reinterpret_cast<const char*>(data), size})) return 0;
  engine::FileLogCursor cursor(std::move(file));
  if (size % 2 == 1) [[maybe_unused]]
    const auto near_end = cursor.seek_near_end(size / 2);
  logs::LineSplitter splitter("main", "host");
  size_t bytes = 0;
  const auto count = [&](const job::LogRecord& record) { bytes += record.text.size(); };
  engine::LogFrame frame;
  while (true) {
    const auto more = cursor.next(frame);
    if (!more || !*more) break;
    splitter.add(frame, count);
  }
  splitter.flush(true, count);
  if (bytes > size) __builtin_trap();
  return 0;
}
