#include "page/page_files.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/hash.h"

namespace muster::page {

const PageFile* find_page_file(std::string_view path) {
  const auto files = page_files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const PageFile& each) { return each.path == path; });
  return found == files.end() ? nullptr : &*found;
}

std::string_view content_type_of(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kTypes{{
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".json", "application/json"},
      {".svg", "image/svg+xml"},
      {".woff2", "font/woff2"},
      {".txt", "text/plain; charset=utf-8"},
  }};
  for (const auto& [extension, type] : kTypes) {
    if (path.ends_with(extension)) return type;
  }
  return "application/octet-stream";
}

// The files are part of the program, so no attacker can choose two with the same hash.
std::string etag_of(const PageFile& file) {
  return "\"" + std::to_string(base::fnv_1a(file.gzip)) + "\"";
}

}  // namespace muster::page
