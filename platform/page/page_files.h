// The files of the web page: web/dist, which the build compresses with gzip and puts into the program
// by .incbin. `make web` builds web/dist; a build without it has no page.
//
// Thread-safe (no state). The bytes live as long as the program.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace muster::page {

struct PageFile {
  std::string_view path;  ///< "index.html", "assets/index-CmW_puyd.css"
  std::string_view gzip;  ///< the compressed content
};

std::span<const PageFile> page_files();

/// nullptr: there is no such file.
const PageFile* find_page_file(std::string_view path);

/// "text/html; charset=utf-8"; "application/octet-stream" for an unknown extension.
std::string_view content_type_of(std::string_view path);

/// Changes when the content changes: for the header etag, in its quotes.
std::string etag_of(const PageFile& file);

}  // namespace muster::page
