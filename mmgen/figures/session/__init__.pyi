from .material import (
    Group as Group,
    Material as Material,
    gather as gather,
    labels_in_latent as labels_in_latent,
    latent_sizes as latent_sizes,
    setting as setting,
    target_of as target_of,
)
from .session import (
    Session as Session,
    Source as Source,
    across as across,
    blocks as blocks,
    draw_all as draw_all,
    draw_pictures as draw_pictures,
    open_session as open_session,
)
