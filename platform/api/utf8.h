// What the wire asks about text, by its short names.
#pragma once

#include "base/utf8.h"

namespace muster::api {

using base::as_utf8;
using base::is_utf8;
using base::shortened;

}  // namespace muster::api
