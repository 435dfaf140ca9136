from .report_files import (
    ModelFiles as ModelFiles,
    ReportFiles as ReportFiles,
    gather_files as gather_files,
    get_setting as get_setting,
    labels_in_latent as labels_in_latent,
    latent_sizes as latent_sizes,
    name_data as name_data,
    target_of as target_of,
)
from .session import (
    Session as Session,
    Source as Source,
    draw_from_sources as draw_from_sources,
    draw_pictures as draw_pictures,
    images_per_row as images_per_row,
    name_blocks as name_blocks,
    open_session as open_session,
)
