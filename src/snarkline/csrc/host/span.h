// Spans inside native code, on the timeline's clock: SNL_SPAN("msm.buckets") covers the rest of its scope.
#pragma once

#define SNL_SPAN(name) ((void)0)
