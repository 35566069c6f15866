// What the wire reads and writes JSON with, by its short names.
#pragma once

#include "base/text.h"
#include "record/fields.h"
#include "record/json_writer.h"
#include "record/rfc3339.h"

namespace muster::api {

using record::append_rfc3339;
using record::Fields;
using record::JsonWriter;
using record::Need;
using record::parse_rfc3339;
using record::read_document;
using record::Unknown;

// What the wire asks about text, by its short names.

using base::as_utf8;
using base::is_utf8;
using base::shortened;

}  // namespace muster::api
